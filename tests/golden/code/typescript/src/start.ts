import type { OrderService } from "./orders";

export const start = (service: OrderService) => service.start();

export const later = function* (service: OrderService) {
  yield service;
};
