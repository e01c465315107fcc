export function Broken() {
  return <div><Star</div>;
}

export const after = () => <p>fine</p>;
