/** A text whose words are counted, and the answer. */
import { Schema } from "effect"

export const Text = Schema.Struct({ text: Schema.String })
export interface Text extends Schema.Schema.Type<typeof Text> {}

export const Count = Schema.Struct({ words: Schema.Int })
