/** Extracts long strings from a value on the long-body thread. The main thread sends their bytes upstream (`upstream/wire/LongText`). */
import { randomUUID } from "node:crypto"
import type { LongTexts } from "../../upstream/wire/LongText.ts"
import { isObject } from "../../upstream/wire/Failures.ts"
import { bufferOf } from "./Task.ts"

/** The minimum length of a long string, in characters. */
const longMin = 64 * 1024

/** Long strings as JSON without their quotes, by placeholder. */
export type Texts = ReadonlyMap<string, Uint8Array>

/** A value with placeholders instead of its long strings. */
export interface Shortened<A> {
  readonly value: A
  readonly texts: Texts
}

export const shortened = <A>(value: A): Shortened<A> => {
  const texts = new Map<string, Uint8Array>()
  return { value: replaced(value, texts) as A, texts }
}

const replaced = (value: unknown, texts: Map<string, Uint8Array>): unknown => {
  if (typeof value === "string") return value.length < longMin ? value : placeholderFor(value, texts)
  if (Array.isArray(value)) return value.map((one) => replaced(one, texts))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, replaced(one, texts)]))
}

const placeholderFor = (text: string, texts: Map<string, Uint8Array>): string => {
  const standIn = randomUUID()
  texts.set(standIn, new TextEncoder().encode(JSON.stringify(text)).subarray(1, -1))
  return standIn
}

/** Wraps the bytes of long strings that the thread has sent. */
export const longTextsOf = (texts: Texts): LongTexts =>
  new Map([...texts].map(([standIn, bytes]) => [standIn, bufferOf(bytes)]))
