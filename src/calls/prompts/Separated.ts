/** Separates a request body's long members on the long-body thread. The main thread copies their bytes to the upstream unread. */
import { isUtf8 } from "node:buffer"
import { memberOf, membersIn } from "../../kernel/JsonText.ts"
import type { LongMember } from "./Prompt.ts"

type Body = Readonly<Record<string, unknown>>

/** A body without its long members, and these members. */
export interface Separated {
  readonly rest: Body
  readonly members: ReadonlyArray<LongMember>
}

export interface Separation {
  /** The member to separate regardless of its length. */
  readonly long: string
  /** Returns whether the main thread reads or changes the member. If so, it remains in the body. */
  readonly kept: (name: string) => boolean
  /** Returns the short value that replaces a long member in the body. */
  readonly shortened: (name: string, value: unknown) => unknown
}

/** Other members are also separated if their JSON has more characters than this. */
const memberMax = 64 * 1024

/** Separates the long members from the rest of the body. `json` is the body's received JSON. */
export const separated = (body: Body, json: Buffer, { kept, long, shortened }: Separation): Separated => {
  const members: Array<LongMember> = []
  const entries = Object.entries(body).map(([name, value]) => {
    if (name === long) {
      members.push({ name, ...placeOf(json, name, value) })
      return [name, shortened(name, value)] as const
    }
    const text = kept(name) || isShort(value) ? undefined : JSON.stringify(value)
    if (text === undefined || text.length <= memberMax) return [name, value] as const
    members.push({ name, bytes: new TextEncoder().encode(text), from: 0, to: 0 })
    return [name, shortened(name, value)] as const
  })
  return { rest: Object.fromEntries(entries), members }
}

/** Returns whether the value is certainly short. */
const isShort = (value: unknown): boolean =>
  typeof value === "string" ? value.length <= memberMax / 8 : typeof value !== "object" || value === null

/**
 * Finds the long member's bytes in the received JSON. If an upstream might read another value from them, the value is serialized again (see
 * `prompts/Outgoing`).
 */
const placeOf = (json: Buffer, name: string, value: unknown): Omit<LongMember, "name"> => {
  const found = memberOf(json, name)
  if (found === undefined || found.members !== membersIn(value) || !isUtf8(found.bytes))
    return { bytes: new TextEncoder().encode(JSON.stringify(value)), from: 0, to: 0 }
  const from = found.bytes.byteOffset - json.byteOffset
  return { bytes: undefined, from, to: from + found.bytes.length }
}
