/**
 * The texts of a proof of liabilities: the leaf of an account's balance at the end of a UTC day, and the statement about all of them. Leaves are in
 * blocks of 256 accounts in the order of their creation, and in the order of their hashes within a block. The salt, and with it that order, changes
 * every day, so a path tells a customer no more than some amounts of unknown accounts.
 */
import { hash } from "node:crypto"
import type { ClosingBalance } from "../ledger/rows/ClosingBalances.ts"
import * as SumTree from "./SumTree.ts"
import type { SumNode } from "./SumTree.ts"

/** The number of accounts in a block. */
export const tileWidth = 256

const leafVersion = "tollgate-balance/1"
const statementVersion = "tollgate-liabilities/1"

/** The salt's length in characters of base64: 132 bits. */
const saltLength = 22

const saltOf = (key: string, day: string, id: string): string =>
  hash("sha256", `${key}\n${day}\n${id}`, "base64url").slice(0, saltLength)

/** The text of an account's leaf. `entry` is the number of the entry that the balance is from. */
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

/** The leaves of a block, in their order. */
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

/** The sums of a day. */
export interface DaySums {
  /** The name of the log. */
  readonly origin: string
  readonly day: string
  /** The number of entries in the log at the end of the day. */
  readonly entries: number
  readonly accounts: number
  readonly root: SumNode
}

/** The text of the statement, which the log's key signs. It cannot be mistaken for a checkpoint, which begins with the name of the log. */
export const statementText = ({ accounts, day, entries, origin, root }: DaySums): string =>
  `${statementVersion}
log ${origin}
day ${day}
total ${root.sum}
accounts ${accounts}
entries ${entries}
root ${Buffer.from(root.hash).toString("base64")}
`
