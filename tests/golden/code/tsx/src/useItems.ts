export function useItems() {
  const items: string[] = [];
  const reload = () => items.push("new");
  return { items, reload };
}
