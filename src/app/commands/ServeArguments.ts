/** Recognizes the plain forms of `serve` before the command-line library is loaded. */

/** Parses `serve` or `serve --config FILE`. Returns `undefined` for any other command line. */
export const serveArguments = (words: ReadonlyArray<string>): { readonly config: string | undefined } | undefined => {
  const [command, flag, path, ...more] = words
  if (command !== "serve" || more.length > 0) return undefined
  if (flag === undefined) return { config: undefined }
  return flag === "--config" && path !== undefined && !path.startsWith("-") ? { config: path } : undefined
}
