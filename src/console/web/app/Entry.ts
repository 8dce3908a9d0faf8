/** What an entry of the ledger is called: a purchase that was taken back is a refund, and what has no source is a call. */
import { texts } from "../texts.ts"
import type { Schemas } from "./Client.ts"

export const nameOfEntry = ({ source, type }: Pick<Schemas["LedgerEntry"], "source" | "type">): string =>
  texts.entries[source === "purchase" && type === "debit" ? "refund" : (source ?? "call")]
