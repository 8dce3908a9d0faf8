/** Copies the `error` text of a refusal's body into the reason phrase. Clients that expect `error` to be an object show the phrase instead. */

const lengthMax = 200

/** Returns the phrase for a response with this status and JSON body, or `undefined` for the standard phrase. */
export const reasonOf = (status: number, body: string | Uint8Array): string | undefined => {
  if (status < 400 || body.length > 64 * 1024) return undefined
  try {
    const { error } = JSON.parse(typeof body === "string" ? body : Buffer.from(body).toString()) as { error?: unknown }
    const text = typeof error === "string" ? error : (error as { message?: unknown } | undefined)?.message
    return typeof text === "string" ? phraseOf(text) : undefined
  } catch {
    return undefined
  }
}

/** Reduces a string to visible ASCII and single spaces, the characters that a status line allows. */
export const phraseOf = (text: string): string | undefined =>
  text
    .slice(0, lengthMax)
    .replace(/[^\x21-\x7e]+/g, " ")
    .trim() || undefined
