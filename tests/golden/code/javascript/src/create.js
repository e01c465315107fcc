import Logger, * as everything from './logger.js';
import { Worker as default_ } from './worker';

export { default_ as Worker };
export * from './base';
export * as base from './base';

@sealed
export class Created extends default_ {
  @logged
  run() {
    Logger.info('x');
    everything.default.info('y');
  }
}

export const create = () => new Created();
export const lazy = () => import('./worker').then((found) => found.Worker);

function sealed(target) {}
function logged(target) {}

export default class extends Created {}
