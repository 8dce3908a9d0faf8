/** Compares verified receipts. The code needs only the verifier, so it runs in Node, browsers and Deno. */
import type { ReceiptEntry, VerifiedReceipt } from "./Verifier.ts"

/** Joins all fields of an entry. */
const textOf = (entry: ReceiptEntry): string => Object.values(entry).join("\n")

/** Lists the missing numbers between the first and the last receipt of each account, and contradictory entries. */
export const gaps = (receipts: ReadonlyArray<VerifiedReceipt>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const inOrder = receipts
    .map(({ entry }) => entry)
    .toSorted((one, other) =>
      one.account === other.account ? one.number - other.number : one.account < other.account ? -1 : 1
    )
  for (const [i, entry] of inOrder.entries()) {
    const before = inOrder[i - 1]
    if (before?.account !== entry.account) continue
    const after = before.balance + (entry.type === "credit" ? entry.amount : -entry.amount)
    if (entry.number > before.number + 1)
      found.push(`${entry.account}: no receipt for the entries ${before.number + 1} to ${entry.number - 1}`)
    else if (entry.number === before.number + 1 && entry.balance !== after)
      found.push(`${entry.account}: the balance of entry ${entry.number} does not follow from the entry before`)
    else if (entry.number === before.number && textOf(entry) !== textOf(before))
      found.push(`${entry.account}: two entries have the number ${entry.number}`)
  }
  return found
}
