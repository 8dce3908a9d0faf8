/** The strings that both database engines can store unchanged. */
import { Schema } from "effect"

/** Returns whether the text can be stored. PostgreSQL cannot store U+0000 in text, and neither engine can store an unpaired surrogate. */
export const isStorable = (text: string): boolean => !text.includes("\0") && text.isWellFormed()

export const storableRule = "must not contain U+0000 or unpaired surrogates"

export const StoredText = Schema.String.pipe(Schema.filter(isStorable, { message: () => storableRule }))
