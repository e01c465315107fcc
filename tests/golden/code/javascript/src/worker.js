const { Base } = require('./base');

class Worker extends Base {
  static count = 0;
  #jobs = [];
  timer = new Timer();
  onDone = () => this.run();

  constructor(size = new Size()) {
    super(size);
    this.logger = createLogger();
    this.size = size;
  }

  get busy() {
    return this.#jobs.length > 0;
  }

  async run() {
    await super.run();
    this.logger.info('run');
    this.timer?.start();
    for (const job of this.#jobs) this.#start(job);
  }

  #start(job) {
    job.go();
  }

  static make() {
    return new Worker();
  }
}

function Timer() {
  this.started = 0;
}

Timer.prototype.start = function () {
  this.started += 1;
};

function Size() {}

const retry = function (worker) {
  return Worker.make().run();
};

const createLogger = () => require('./logger');

module.exports = {
  Worker,
  retry,
  wait: delay,
  shout(text) {
    return text;
  },
  whisper: (text) => text,
  base: require('./base'),
  ...require('./logger'),
};

function* delay() {
  yield 1;
}
