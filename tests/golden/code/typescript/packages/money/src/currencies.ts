export enum Currency {
  Euro = "EUR",
  Yen = "JPY",
}

export const enum Side {
  Left,
  Right,
}

export const symbols = { euro: "€", yen: "¥" } as const;
