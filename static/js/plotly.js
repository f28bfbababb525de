/**
 * Plotly is most of the page's code. Its bundle is fetched with the rest (the template says so), but evaluated only once
 * the first picture stands of what is drawn without it.
 */

/** Where no picture comes, as while the server is away, the charts' frames are drawn all the same. */
const AT_LATEST_MS = 1500;

/** A view that begins it with the first picture; onLoaded(): window.Plotly is there. */
export function createPlotlyLoader({ onLoaded, win = window }) {
  let begun = false;

  function load() {
    if (begun) return;
    begun = true;
    const script = win.document.createElement("script");
    script.src = win.document.getElementById("plotly").href;
    script.onload = onLoaded;
    win.document.head.append(script);
  }

  win.setTimeout(load, AT_LATEST_MS);
  return (state) => {
    // After the frame: what was drawn in it is painted first.
    if (state.ready && !begun) win.setTimeout(load);
    return null;
  };
}
