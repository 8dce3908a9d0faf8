/** Recognizes the plain forms of `serve` before the command-line library is loaded. */

export interface ServeArguments {
  readonly config: string | undefined
  /** The text of `--workers`, which `workersOf` reads. */
  readonly workers: string | undefined
}

/** Parses `serve` with `--config FILE` and `--workers N`, each at most once. Returns `undefined` for any other command line. */
export const serveArguments = (words: ReadonlyArray<string>): ServeArguments | undefined => {
  const [command, ...rest] = words
  if (command !== "serve") return undefined
  const values: Record<string, string> = {}
  for (let i = 0; i < rest.length; i += 2) {
    const [flag, value] = [rest[i]!, rest[i + 1]]
    if (value === undefined || value.startsWith("-") || Object.hasOwn(values, flag)) return undefined
    if (flag !== "--config" && flag !== "--workers") return undefined
    values[flag] = value
  }
  return { config: values["--config"], workers: values["--workers"] }
}

export const workersMax = 64

/** Parses the worker count. Returns 1 without the option, and `undefined` for an invalid number. */
export const workersOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return 1
  const number = /^[1-9]\d?$/.test(text) ? Number(text) : 0
  return number >= 1 && number <= workersMax ? number : undefined
}
