/** Generates new ids (see `Ids`). It does not import `effect`, so code that runs before `effect` is loaded can use it. */

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

/** The kinds of ids. Every id begins with its kind. */
export type Kind =
  | "acc"
  | "app"
  | "bil"
  | "bud"
  | "call"
  | "fam"
  | "idn"
  | "inv"
  | "key"
  | "led"
  | "med"
  | "msg"
  | "ntf"
  | "opk"
  | "ops"
  | "pay"
  | "pky"
  | "req"
  | "run"
  | "scg"
  | "ten"
  | "trf"
  | "use"
  | "vch"

// Encode two characters per step, because every call and every request gets an id.
const pairs = Array.from({ length: 1024 }, (_, i) => alphabet[i >> 5]! + alphabet[i & 31]!)

let lastMillis = -1
let lastTime = ""

const time = (millis: number): string => {
  if (millis === lastMillis) return lastTime
  let text = ""
  for (let rest = millis, i = 0; i < 5; i++) {
    text = pairs[rest % 1024]! + text
    rest = Math.floor(rest / 1024)
  }
  lastMillis = millis
  return (lastTime = text)
}

// Draw random bytes in blocks: one system call provides enough for 341 ids.
const pool = new Uint16Array(2048)
let drawn = pool.length

const random = (): string => {
  if (drawn + 6 > pool.length) {
    crypto.getRandomValues(pool)
    drawn = 0
  }
  let text = ""
  for (const end = drawn + 6; drawn < end; drawn++) text += pairs[pool[drawn]! & 1023]!
  return text
}

export const at = (kind: Kind, millis: number): string => `${kind}_${time(millis)}${random()}`
