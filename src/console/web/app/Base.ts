/** The base URL of the console: the path of its own files, and the root of the API next to it. The server writes it into `<base>`. */

/** `/console/`, or for example `/gate/console/` below a prefix. */
export const consoleBase = new URL(document.baseURI)

/** The root of the API, without a trailing slash. */
export const apiRoot = new URL("..", consoleBase).href.replace(/\/$/, "")

/** The URL of a path below the console. The path has no leading slash. */
export const addressOf = (path: string): string => new URL(path, consoleBase).href

/** Like `addressOf`, for an untrusted path from a URL. Paths that lead elsewhere, or to a sign-in, become the first page. */
export const pageAt = (path: string): string => {
  const href = URL.canParse(path, consoleBase) ? addressOf(path) : ""
  return href.startsWith(consoleBase.href) && !href.startsWith(addressOf("sign-in")) ? href : consoleBase.href
}
