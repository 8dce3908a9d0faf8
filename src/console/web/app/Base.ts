/** Where the console is served: the path of its own files, and the root of the API beside them. The server writes it into `<base>`. */

/** `/console/`, or `/gate/console/` behind a path of its own. */
export const consoleBase = new URL(document.baseURI)

/** The root of the API, without a slash at its end. */
export const apiRoot = new URL("..", consoleBase).href.replace(/\/$/, "")

/** A path below the console, without a slash before it, as an address. */
export const addressOf = (path: string): string => new URL(path, consoleBase).href

/** The same of a path that an address names, which may be anything: the first page for what leads elsewhere, or to a sign-in. */
export const pageAt = (path: string): string => {
  const href = URL.canParse(path, consoleBase) ? addressOf(path) : ""
  return href.startsWith(consoleBase.href) && !href.startsWith(addressOf("sign-in")) ? href : consoleBase.href
}
