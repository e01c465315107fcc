#!/usr/bin/env node
import "./polyfills";
import type { Order } from "./orders/order";
import { OrderService as Service, type Listener } from "./orders";
import * as shared from "@shared/text";
import { Money, parse } from "@shop/money";
import { round } from "@shop/money/rounding";
import defaults, { limits } from "./shared/defaults";
import fs = require("node:fs");

export { Service, limits as bounds };
export type { Order };

let started = false, runs = 0;

/**
 * Start the shop.
 *
 * @param names who may order
 */
export default async function main(names: string[]): Promise<Service> {
  const service = new Service(defaults);
  const { start: begin } = await import("./start");
  begin(service);
  for (const name of names) {
    service.announce(shared.title(name));
  }
  const total = parse("12") ?? Money.of(1);
  service.log?.(round(total.whole));
  started = true;
  runs += 1;
  return service;
}

const listener: Listener = (order) => {
  describe(order);
};

function describe(order: Order): string {
  const line = (text: string) => text.trim();
  return line(order.describe());
}

main([]).then((service) => service.onOrder(listener));
fs.existsSync("x");
