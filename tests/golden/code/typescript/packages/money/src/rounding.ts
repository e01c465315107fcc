// Half goes up.
export const round = (value: number): number => Math.floor(value + 0.5);
