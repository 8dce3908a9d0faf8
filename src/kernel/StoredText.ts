/** Strings in requests that both database engines can store unchanged. */
import { Schema } from "effect"

/** PostgreSQL cannot store U+0000 in text. Neither engine can store an unpaired surrogate. */
export const isStorable = (text: string): boolean => !text.includes("\0") && text.isWellFormed()

export const storableRule = "must not contain U+0000 or unpaired surrogates"

export const StoredText = Schema.String.pipe(Schema.filter(isStorable, { message: () => storableRule }))
