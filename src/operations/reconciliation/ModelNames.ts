/** Matches vendors' names for models: vendors bill `gpt-5` as `gpt-5-2026-03-01`, `openai/gpt-5` or `gpt-5@20260301`. */

const plain = (name: string): string =>
  name
    .toLowerCase()
    .replace(/^[a-z0-9_.-]+\//, "")
    .replace(/[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|latest)(?=$|-v\d)/, "")
    .replace(/(?:-v\d+)?(?::\d+)?$/, "")
    .replaceAll(/[^a-z0-9]+/g, "-")

/**
 * Returns a function that finds the known model for a name on a bill. It returns the name itself if none or several match. An identical name always
 * wins.
 */
export const nameLookup = (known: ReadonlySet<string>): ((billed: string) => string) => {
  const plainly = new Map<string, string | undefined>()
  for (const name of known) plainly.set(plain(name), plainly.has(plain(name)) ? undefined : name)
  return (billed) => (known.has(billed) ? billed : (plainly.get(plain(billed)) ?? billed))
}
