export const colour = 'red';
