/** The URLs of the console and of the API next to it. The server writes the console's path into `<base>`. */

/** The console's URL. Its path is `/console/`, or `/gate/console/` if the service has the prefix `/gate`. */
export const consoleBase = new URL(document.baseURI)

/** The API's root URL, without a trailing slash. */
export const apiRoot = new URL("..", consoleBase).href.replace(/\/$/, "")

/** Returns the URL of a path below the console. `path` has no leading slash. */
export const consoleUrl = (path: string): string => new URL(path, consoleBase).href

/** Resolves an untrusted path against the console's URL. Returns the console's URL if the result is outside the console or a sign-in page. */
export const safeConsoleUrl = (path: string): string => {
  const href = URL.canParse(path, consoleBase) ? consoleUrl(path) : ""
  return href.startsWith(consoleBase.href) && !href.startsWith(consoleUrl("sign-in")) ? href : consoleBase.href
}
