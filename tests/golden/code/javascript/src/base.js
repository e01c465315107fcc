exports.Base = class Base {
  run() {}
};
exports.helper = function helper() {
  return exports.Base;
};
exports.alias = internal;

function internal() {}
