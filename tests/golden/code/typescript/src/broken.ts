import { a from "./a";

export class Broken {
  fine(): void {
    this.missing(;
  }

  after(): void {}
}

export function still(here: Broken) {
  here.after();
}

export const unfinished = {
