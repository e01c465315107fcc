import { Money } from "@shop/money";
import { Labelled, type Described } from "@shared/text";

/** What a customer wants. */
export interface Line extends Described {
  readonly name: string;
  price: Money;
  discount?: (price: Money) => Money;
  total(): Money;
  total(currency: string): Money;
}

export type Lines = readonly Line[];
export type Handler<T extends Line = Line> = (line: T) => void;
export type Priced = Line & { price: Money };
export type Options = {
  lines: Lines;
  check(line: Line): boolean;
  onDone?: () => void;
};

abstract class Base<T> {
  protected abstract kind(): string;
  protected items: T[] = [];

  add(item: T): this {
    this.items.push(item);
    return this;
  }
}

@Labelled("order")
export class Order extends Base<Line> implements Described, Iterable<Line> {
  #number = 0;
  private total: Money = Money.of(0);
  static last?: Order;
  static counter = new Map<string, Order>();

  constructor(private readonly options: Options, public note?: string) {
    super();
    this.total = new Money(0);
  }

  @Labelled("sum")
  @Labelled("whole")
  sum(): Money {
    return this.items.reduce((sum, line) => sum.plus(line.total()), this.total);
  }

  /** In words. */
  describe(): string;
  describe(long: boolean): string;
  describe(long?: boolean): string {
    if (this.options.check(this.items[0])) {
      this.options.onDone?.();
    }
    return `${this.kind()} ${this.#next()}${long ? this.note! : ""}`;
  }

  protected kind(): string {
    return "order";
  }

  #next(): number {
    return ++this.#number;
  }

  cancel = async (reason: string): Promise<void> => {
    super.add(this.items[0]);
    await this.options.lines[0].describe(reason);
  };

  *[Symbol.iterator](): Iterator<Line> {
    yield* this.items;
  }
}
