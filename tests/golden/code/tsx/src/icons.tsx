export function Star({ size }: { size: number }) {
  return <svg width={size} />;
}
