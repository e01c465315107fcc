import { round } from "./rounding";

/** An amount of money, in cents. */
export class Amount {
  static readonly zero = new Amount(0);
  static #made = 0;

  constructor(readonly cents: number) {
    Amount.#made++;
  }

  get whole(): number {
    return round(this.cents / 100);
  }

  plus(other: Amount): Amount {
    return new Amount(this.cents + other.cents);
  }

  static of(whole: number): Amount {
    return new Amount(whole * 100);
  }
}
