import { Order, type Line, type Options } from "./order";
import { EventEmitter } from "events";

export type Listener = (order: Order) => void;

/** Takes orders. */
export class OrderService extends EventEmitter {
  private order: Order;
  private listeners_ = new Set<Listener>();

  constructor(options: Options) {
    super();
    this.order = new Order(options);
  }

  start(): OrderService {
    this.order.sum().plus(this.order.sum());
    return this;
  }

  announce(name: string): void {
    this.emit("announce", name);
    (this.order as Order).describe();
    api.send(name);
    api.nested.send(name);
  }

  onOrder(listener: Listener): void {
    this.listeners_.add(listener);
    listener(this.order);
  }

  log?(value: number): void;
}

export const api = {
  send(name: string) {
    return receive(name);
  },
  receive,
  close: () => api.send("close"),
  "quoted-name": function () {},
  nested: {
    send(name: string) {
      return name;
    },
  },
};

export function receive(text: string): Line[];
export function receive(text: number): Line[];
export function receive(text: unknown): Line[] {
  return checked(text) ? [] : Array.of<Line>();
}

function checked(text: unknown): text is string {
  return typeof text === "string" && text.length > 0;
}
