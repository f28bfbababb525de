/** Hands a file to the person: as a blob, so that nothing leaves the page. */
export function download(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // After the click is through; the browser reads the blob by then.
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
