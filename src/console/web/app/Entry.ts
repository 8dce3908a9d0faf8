/** Returns a ledger entry's display name. A debit with the source `purchase` is a refund; an entry without a source is a call. */
import { texts } from "../texts.ts"
import type { Schemas } from "./Client.ts"

export const nameOfEntry = ({ source, type }: Pick<Schemas["LedgerEntry"], "source" | "type">): string =>
  texts.entries[source === "purchase" && type === "debit" ? "refund" : (source ?? "call")]
