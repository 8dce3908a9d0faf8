/** Compares the bodies of a call with its receipt. The code needs only the verifier, so it runs in Node, browsers and Deno. */
import { bytesOf, isSame, sha256 } from "./Verifier.ts"
import type { ReceiptEntry } from "./Verifier.ts"

/** The bodies of a call as the client sent and received them, without a transport encoding such as gzip. */
export interface CallBodies {
  readonly request?: Uint8Array | undefined
  readonly answer?: Uint8Array | undefined
}

/** The service ignores a request's byte order mark, so the receipt's hash does not include it. */
const withoutMark = (body: Uint8Array): Uint8Array =>
  body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body

/** Returns a sentence for each body that does not match the receipt's call. Returns an empty array if all match. */
export const otherBodies = async (entry: ReceiptEntry, bodies: CallBodies): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  for (const name of ["request", "answer"] as const) {
    const [body, hash] = [bodies[name], entry[`${name}_hash`]]
    if (body === undefined) continue
    if (hash === "") found.push(`the receipt contains no hash of the ${name}`)
    else if (!isSame(await sha256(name === "request" ? withoutMark(body) : body), bytesOf(hash)))
      found.push(`the ${name} is not the one that the receipt is for`)
  }
  return found
}
