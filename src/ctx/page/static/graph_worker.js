// Paints the graph beside the page, so that the page stays free while it is moved.

import { paint } from "./graph_painter.js";

let scene = null;
let style = null;
let canvas = null;

onmessage = ({ data }) => {
  if (data.scene) scene = data.scene;
  if (data.style) style = data.style;
  if (data.hidden) scene.hidden = data.hidden;
  for (const [each, x, y] of data.moved ?? []) {
    scene.x[each] = x;
    scene.y[each] = y;
  }
  if (!data.view || !scene) return;
  const { view } = data;
  const width = Math.round(view.width * view.ratio);
  const height = Math.round(view.height * view.ratio);
  if (canvas?.width !== width || canvas?.height !== height) canvas = new OffscreenCanvas(width, height);
  paint(canvas.getContext("2d"), scene, view, style);
  const picture = canvas.transferToImageBitmap();
  postMessage({ picture, view }, [picture]);
};
