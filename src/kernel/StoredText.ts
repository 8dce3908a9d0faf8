/** Texts of requests that are stored: they are read back unchanged, on either engine. */
import { Schema } from "effect"

/** PostgreSQL holds no U+0000 in a text, and no engine half of a surrogate pair. */
export const isStorable = (text: string): boolean => !text.includes("\0") && text.isWellFormed()

export const storableRule = "a text without U+0000 and unpaired surrogates"

export const StoredText = Schema.String.pipe(Schema.filter(isStorable, { message: () => storableRule }))
