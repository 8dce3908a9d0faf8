/** The configuration of the toy: `tools.words`. */
import { Context, Layer, Schema } from "effect"
import { UsdPer } from "../../../src/kernel/Price.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"

export class WordPrice extends Context.Tag("test/toy/WordPrice")<WordPrice, UnitPrice>() {}

export const fields = { words: Schema.Struct({ usd_per_word: UsdPer(1) }) }

export const layer = ({ words }: { readonly words: { readonly usd_per_word: UnitPrice } }) =>
  Layer.succeed(WordPrice, words.usd_per_word)
