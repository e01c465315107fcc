export * from "./rounding.js";
export { Amount as Money } from "./amount";
export * as currencies from "./currencies";
export { default as parse } from "./parse";
