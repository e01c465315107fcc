import { Amount } from "./amount";

export default function (text: string): Amount | undefined {
  const cents = Number(text);
  return Number.isNaN(cents) ? undefined : new Amount(cents);
}
