export namespace Shapes {
  export interface Shape {
    area(): number;
  }
  export class Square implements Shape {
    constructor(private side: number) {}
    area() {
      return helper(this.side);
    }
  }
  function helper(side: number) {
    return side * side;
  }
  export const unit = new Square(1);
}

import Square = Shapes.Square;

const mixin = <T extends new (...args: any[]) => Shapes.Shape>(base: T) =>
  class extends base {
    doubled() {
      return super.area() * 2;
    }
  };

export const Doubled = mixin(Square);
export const Circle = class extends Square {};
const { area, unit: one } = Shapes.unit;
export = Square;
