module.exports = class Logger {
  static info(text) {
    console.log(text);
  }
};
