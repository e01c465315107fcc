import type { Options } from "../orders/order";

export const limits = { most: 10 } satisfies Record<string, number>;

export default {
  lines: [],
  check(line) {
    return line.name.length < limits.most;
  },
} as Options;
