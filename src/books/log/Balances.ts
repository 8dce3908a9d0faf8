/**
 * The texts of a proof of liabilities: the leaf for an account's balance at the end of a UTC day, and the statement about the total. Leaves are
 * grouped into blocks of 256 accounts by account number. Within a block, they are sorted by hash. The salts, and with them that order, change every
 * day, so a path reveals to a customer only some amounts of unknown accounts.
 */
import { hash } from "node:crypto"
import type { ClosingBalance } from "../ledger/rows/ClosingBalances.ts"
import * as SumTree from "./SumTree.ts"
import type { SumNode } from "./SumTree.ts"

/** The number of accounts per block. */
export const tileWidth = 256

const leafVersion = "tollgate-balance/1"
const statementVersion = "tollgate-liabilities/1"

/** The salt's length in base64 characters: 132 bits. */
const saltLength = 22

const saltOf = (key: string, day: string, id: string): string =>
  hash("sha256", `${key}\n${day}\n${id}`, "base64url").slice(0, saltLength)

/** Returns an account's leaf text. `entry` is the number of the account's last entry. */
export const leafOf = (key: string, day: string, { balance, entry, id }: ClosingBalance): string =>
  `${leafVersion}
account ${JSON.stringify(id)}
day ${day}
balance ${balance}
entry ${entry}
salt ${saltOf(key, day, id)}
`

export interface BalanceLeaf extends SumNode {
  readonly account: number
  readonly text: string
}

/** Returns a block's leaves, in order. */
export const leavesOf = (
  key: string,
  day: string,
  balances: ReadonlyArray<ClosingBalance>
): ReadonlyArray<BalanceLeaf> =>
  balances
    .map((balance): BalanceLeaf => {
      const text = leafOf(key, day, balance)
      return { account: balance.account, text, hash: SumTree.leafHash(text), sum: balance.balance }
    })
    .toSorted((one, other) => Buffer.compare(one.hash, other.hash))

/** A day's sums. */
export interface DaySums {
  /** The log's name. */
  readonly origin: string
  readonly day: string
  /** The number of log entries at the end of the day. */
  readonly entries: number
  readonly accounts: number
  readonly root: SumNode
}

/** Returns the statement's text, to be signed with the log's key. It cannot be mistaken for a checkpoint, which begins with the log's name. */
export const statementText = ({ accounts, day, entries, origin, root }: DaySums): string =>
  `${statementVersion}
log ${origin}
day ${day}
total ${root.sum}
accounts ${accounts}
entries ${entries}
root ${Buffer.from(root.hash).toString("base64")}
`
