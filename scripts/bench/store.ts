// The floor's books: the rows that a metered call must leave, in raw better-sqlite3, durable, in group commits, as one would write them
// by hand. It stays as it is when the service's own tables change, so that a ratio shows what that brought. The service never imports
// this.
import Sqlite from "better-sqlite3"
import { join } from "node:path"

export interface Charge {
  readonly call: string
  readonly account: string
  readonly tenant: string
  readonly application: string
  readonly endpoint: string
  readonly model: string
  readonly provider: string
  readonly prompt: number
  readonly completion: number
  readonly cost: number
  readonly latency: number
}

const tables = `
  CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER NOT NULL, reserved INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE reservations (id TEXT PRIMARY KEY, account TEXT NOT NULL, amount INTEGER NOT NULL, at INTEGER NOT NULL)
    STRICT, WITHOUT ROWID;
  CREATE TABLE tollgate_usage_records (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, account TEXT NOT NULL, tenant TEXT NOT NULL,
    application TEXT, usage_type TEXT NOT NULL, endpoint TEXT NOT NULL, model TEXT NOT NULL, provider TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, units REAL NOT NULL, cost INTEGER NOT NULL,
    latency INTEGER NOT NULL, success INTEGER NOT NULL, error_type TEXT, payer TEXT NOT NULL, payer_tenant TEXT NOT NULL,
    payer_kind TEXT NOT NULL
  ) STRICT;
  CREATE INDEX tollgate_usage_by_tenant ON tollgate_usage_records (seq >> 16, tenant);
  CREATE TABLE tollgate_ledger_entries (
    seq INTEGER PRIMARY KEY, account TEXT NOT NULL, type TEXT NOT NULL, amount INTEGER NOT NULL, balance INTEGER NOT NULL,
    source TEXT, reference TEXT NOT NULL, description TEXT NOT NULL, at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX ledger_by_account ON tollgate_ledger_entries (seq >> 16, account);
  CREATE TABLE rollups (
    tenant TEXT NOT NULL, day INTEGER NOT NULL, usage_type TEXT NOT NULL, provider TEXT NOT NULL, requests INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, units REAL NOT NULL, cost INTEGER NOT NULL,
    PRIMARY KEY (tenant, day, usage_type, provider)
  ) STRICT, WITHOUT ROWID;`

const day = 86_400_000

export const openStore = (directory: string) => {
  const db = new Sqlite(join(directory, "floor.db"))
  db.pragma("journal_mode = WAL")
  db.pragma("synchronous = FULL")
  db.pragma("wal_autocheckpoint = 4000")
  if (db.pragma("synchronous", { simple: true }) !== 2) throw new Error("SQLite did not take synchronous = FULL")
  db.exec(tables)

  const begin = db.prepare("BEGIN IMMEDIATE")
  const commit = db.prepare("COMMIT")
  const hold = db.prepare("UPDATE accounts SET reserved = reserved + ? WHERE id = ? AND balance - reserved >= ?")
  const putReservation = db.prepare("INSERT INTO reservations VALUES (?, ?, ?, ?)")
  const takeReservation = db.prepare("DELETE FROM reservations WHERE id = ? RETURNING amount").pluck()
  const pay = db
    .prepare("UPDATE accounts SET balance = balance - ?, reserved = reserved - ? WHERE id = ? RETURNING balance")
    .pluck()
  const putUsage = db.prepare(
    "INSERT INTO tollgate_usage_records VALUES (NULL, ?, ?, ?, ?, ?, 'inference', ?, ?, ?, ?, ?, ?, ?, ?, 1, NULL, ?, ?, 'own')"
  )
  const putEntry = db.prepare("INSERT INTO tollgate_ledger_entries VALUES (NULL, ?, 'debit', ?, ?, NULL, ?, ?, ?)")
  const addRollup = db.prepare(
    `INSERT INTO rollups VALUES (?, ?, 'inference', ?, 1, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET requests = requests + 1, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
       completion_tokens = completion_tokens + excluded.completion_tokens, units = units + excluded.units,
       cost = cost + excluded.cost`
  )

  /** The gate: sets the bound of a call aside, if the account affords it. Inside a transaction. */
  const reserve = (call: string, account: string, amount: number): boolean => {
    if (hold.run(amount, account, amount).changes === 0) return false
    putReservation.run(call, account, amount, Date.now())
    return true
  }

  /** The charge: everything that a call leaves in the books, and its reservation gone. Inside a transaction. */
  const settle = (c: Charge): void => {
    const reserved = takeReservation.get(c.call) as number
    const balance = pay.get(c.cost, reserved, c.account) as number
    const at = Date.now()
    const record = `use_${c.call}`
    const tokens = c.prompt + c.completion
    // One array: better-sqlite3 binds it faster than a long list of arguments.
    putUsage.run([
      record,
      at,
      c.account,
      c.tenant,
      c.application,
      c.endpoint,
      c.model,
      c.provider,
      c.prompt,
      c.completion,
      tokens,
      c.cost,
      c.latency,
      c.account,
      c.tenant
    ])
    putEntry.run(c.account, c.cost, balance, record, c.model, at)
    addRollup.run(c.tenant, at - (at % day), c.provider, c.prompt, c.completion, tokens, c.cost)
  }

  const group = (work: () => void): void => {
    begin.run()
    work()
    commit.run()
  }

  // Whatever one turn of the event loop brings is committed together, and answered when it is on the disk.
  let queue: Array<{ readonly work: () => unknown; readonly done: (result: unknown) => void }> = []
  const drain = () => {
    const jobs = queue
    queue = []
    const results: Array<unknown> = []
    begin.run()
    for (const job of jobs) results.push(job.work())
    commit.run()
    for (let i = 0; i < jobs.length; i++) jobs[i]!.done(results[i])
  }
  const enqueue = (work: () => unknown, done: (result: unknown) => void): void => {
    if (queue.push({ work, done }) === 1) setImmediate(drain)
  }

  return {
    group,
    reserve,
    settle,
    enqueue,
    open: (account: string, balance: number): void => {
      db.prepare("INSERT INTO accounts VALUES (?, ?, 0)").run(account, balance)
    },
    /** What the account has and what is set aside, with the records it left: for the check after a run. */
    look: (account: string) => ({
      ...(db.prepare("SELECT balance, reserved FROM accounts WHERE id = ?").get(account) as {
        readonly balance: number
        readonly reserved: number
      }),
      records: db.prepare("SELECT count(*) FROM tollgate_usage_records").pluck().get() as number,
      collected: db.prepare("SELECT coalesce(sum(amount), 0) FROM tollgate_ledger_entries").pluck().get() as number
    }),
    close: (): void => {
      db.close()
    }
  }
}

export type Store = ReturnType<typeof openStore>
