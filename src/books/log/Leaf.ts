/**
 * A ledger entry's leaf: lines of text, `name value`. Its salt is a keyed hash of account and number, so that entries cannot be guessed from the
 * hashes in public tiles. The salt key is stored with the log, because a reader of the database can read the entries themselves.
 *
 * Values that may contain a line break are JSON strings. Amounts are in nano-USD. Times are Unix time in milliseconds.
 *
 * A leaf has one of two forms. Form 2 adds facts about a charge after `time`: the vendors' request ids (`vendor`), and the SHA-256 hashes of the
 * request and response bodies in base64 (`request`, `answer`). A line is absent if its fact is unknown. `Forms` determines each entry's form.
 */
import { hash } from "node:crypto"
import type { LoggedEntry } from "../ledger/rows/EntriesInOrder.ts"

export type LeafForm = 1 | 2

/** The salt's length in base64 characters: 132 bits. */
const saltLength = 22

/** Computes an entry's salt. A truncated hash cannot be extended, so prefixing the key suffices. An HMAC would take most of the time per entry. */
export const saltOf = (key: string, { billing_account_id, number }: LoggedEntry): string =>
  hash("sha256", `${key}\n${billing_account_id}\n${number}`, "base64url").slice(0, saltLength)

/** Returns the lines that form 2 adds. */
const callLines = ({ answer_hash, request_hash, vendor_request }: LoggedEntry): string =>
  (vendor_request === null ? "" : `vendor ${JSON.stringify(vendor_request)}\n`) +
  (request_hash === null ? "" : `request ${request_hash}\n`) +
  (answer_hash === null ? "" : `answer ${answer_hash}\n`)

/** Returns an entry's leaf text. Different entries have different texts. */
export const leafOf = (key: string, entry: LoggedEntry, form: LeafForm): string =>
  `tollgate-entry/${form}
account ${JSON.stringify(entry.billing_account_id)}
number ${entry.number}
type ${entry.type}
amount ${entry.amount}
balance ${entry.balance}
giftable ${entry.giftable}
source ${entry.source ?? "call"}
reference ${JSON.stringify(entry.reference_id)}
description ${JSON.stringify(entry.description)}
time ${entry.at}
${form === 1 ? "" : callLines(entry)}salt ${saltOf(key, entry)}
`
