'use strict';

const path = require('path');
const { Worker, retry: again } = require('./worker');
const logger = require('./logger');
const create = require('./create').create;
require('./setup');

var app = exports = module.exports = {};

/**
 * Start the workers.
 */
app.start = function start(count) {
  const worker = new Worker(count);
  worker.run();
  again(worker);
  logger.info(path.join('a', 'b'));
  create().run();
  return this.stop();
};

app.stop = () => app.start(0);

module.exports.version = '1.0';
