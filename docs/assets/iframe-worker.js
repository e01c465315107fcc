// Browsers start no web worker for a page that is a file. The search of the site then runs in a
// hidden frame instead, with the part of a worker's interface that it uses.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((resolve) => {
        this.frame.onload = resolve;
      });
      this.frame.srcdoc =
        "<script>postMessage = (data) => parent.postMessage(data, '*');</script>" +
        `<script src="${url}"></script>`;
      document.body.append(this.frame);
      addEventListener("message", (event) => {
        if (event.source === this.frame.contentWindow) {
          this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        }
      });
    }

    postMessage(data) {
      this.ready.then(() => {
        this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
