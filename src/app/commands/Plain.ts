/** The command lines that start a service and nothing else. They are known before anything else is loaded. */

/** What `serve` alone, or with a configuration file, asks for; `undefined` for everything that the command line has to look at. */
export const plain = (words: ReadonlyArray<string>): { readonly config: string | undefined } | undefined => {
  const [command, flag, path, ...more] = words
  if (command !== "serve" || more.length > 0) return undefined
  if (flag === undefined) return { config: undefined }
  return flag === "--config" && path !== undefined && !path.startsWith("-") ? { config: path } : undefined
}
