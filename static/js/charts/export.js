/** A chart's data as CSV and JSON, and what a picture of it needs besides. Pure. */

/** Rows of one shape as CSV: their keys are the first line; null is empty. */
export function toCsv(rows) {
  const columns = Object.keys(rows[0] ?? {});
  const lines = [columns, ...rows.map((row) => columns.map((column) => row[column]))];
  return `${lines.map((cells) => cells.map(csvCell).join(",")).join("\r\n")}\r\n`;
}

function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  // A spreadsheet would run what begins like a formula.
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The rows with where they come from. */
export function toJson({ name, about, server, at_ms, rows }) {
  return `${JSON.stringify({ chart: name, server, ...about, exported_at: new Date(at_ms).toISOString(), rows }, null, 1)}\n`;
}

/** "prefixscope-hit-rate-windows-20261130T193112Z.csv" */
export function fileName(name, at_ms, extension) {
  const moment = new Date(at_ms).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  return `prefixscope-${name}-${moment}.${extension}`;
}

/** The layout of a picture that stands alone: title above, source below, an opaque ground. */
export function pictureLayout(layout, palette, { title, source }, size) {
  const margin = layout.margin ?? {};
  const note = { xref: "paper", yref: "paper", x: 0, y: 0, xanchor: "left", yanchor: "top", yshift: -34, showarrow: false, font: { size: 11, color: palette.muted } };
  return {
    ...layout, ...size,
    paper_bgcolor: palette.panel, plot_bgcolor: palette.panel,
    title: { text: title, x: 0.02, xanchor: "left", font: { size: 17, color: palette.text } },
    margin: { ...margin, l: Math.max(60, margin.l ?? 0), r: 24, t: 84, b: 74 },
    annotations: [...(layout.annotations ?? []), { ...note, text: source }],
  };
}
