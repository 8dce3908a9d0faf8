// The floor's database: writes a metered call's rows with raw better-sqlite3 and durable group commits. It has the same types of rollups as the
// service, and writes them once per commit. Account rows are narrow, and indexes group accounts by a thousand rows, so each commit writes few pages.
// The service never imports this file.
import Sqlite from "better-sqlite3"
import { join } from "node:path"

/** The properties shared by one caller's calls to one model. Sums are accumulated by this object's identity. */
export interface Line {
  readonly account: string
  readonly tenant: string
  readonly person: string
  readonly application: string
  readonly endpoint: string
  readonly model: string
  readonly provider: string
  readonly tags?: string
  readonly end_user?: string
}

export interface Charge {
  readonly call: string
  readonly line: Line
  readonly prompt: number
  readonly completion: number
  readonly cost: number
  readonly latency: number
}

/** The amounts that a batch adds to a line's rollups. */
interface Sums {
  requests: number
  prompt: number
  completion: number
  cost: number
  latency: number
}

const sums = ["requests", "successes", "prompt_tokens", "completion_tokens", "units", "cost", "latency_ms"]

/** The rollups. They serve the same queries as the service's rollups: by tenant and day, by caller and day or hour, by payer and day. */
const rollups = [
  {
    table: "rollup_by_tenant",
    key: ["tenant TEXT", "start INTEGER", "application TEXT", "usage_type TEXT", "provider TEXT"]
  },
  {
    table: "rollup_by_caller",
    key: ["tenant TEXT", "person TEXT", "grain INTEGER", "start INTEGER", "model TEXT", "endpoint TEXT"]
  },
  { table: "rollup_by_payer", key: ["account TEXT", "start INTEGER", "person TEXT", "payer_kind TEXT"] }
]

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
  CREATE INDEX tollgate_usage_by_tenant ON tollgate_usage_records (seq >> 10, tenant);
  CREATE TABLE tollgate_ledger_entries (
    seq INTEGER PRIMARY KEY, account TEXT NOT NULL, type TEXT NOT NULL, amount INTEGER NOT NULL, balance INTEGER NOT NULL,
    source TEXT, reference TEXT NOT NULL, description TEXT NOT NULL, at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX ledger_by_account ON tollgate_ledger_entries (seq >> 10, account);
  ${rollups
    .map(
      ({ key, table }) => `CREATE TABLE ${table} (
    ${key.map((column) => `${column} NOT NULL`).join(", ")}, ${sums.map((column) => `${column} INTEGER NOT NULL`).join(", ")},
    PRIMARY KEY (${key.map((column) => column.split(" ")[0]).join(", ")})
  ) STRICT, WITHOUT ROWID;`
    )
    .join("\n")}`

const [day, hour] = [86_400_000, 3_600_000]

export const openStore = (directory: string) => {
  const db = new Sqlite(join(directory, "floor.db"))
  db.pragma("journal_mode = WAL")
  db.pragma("synchronous = FULL")
  db.pragma("wal_autocheckpoint = 4000")
  if (db.pragma("synchronous", { simple: true }) !== 2) throw new Error("SQLite did not accept synchronous = FULL")
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
  const [addByTenant, addByCaller, addByPayer] = rollups.map(({ key, table }) =>
    db.prepare(
      `INSERT INTO ${table} VALUES (${[...key, ...sums].map(() => "?").join(", ")})
       ON CONFLICT DO UPDATE SET ${sums.map((sum) => `${sum} = ${sum} + excluded.${sum}`).join(", ")}`
    )
  ) as [Sqlite.Statement, Sqlite.Statement, Sqlite.Statement]

  // Accumulate the sums per batch, so that a busy caller's sums are written once per commit.
  const batch = new Map<Line, Sums>()
  const fold = ({ completion, cost, latency, line, prompt }: Charge): void => {
    let of = batch.get(line)
    if (of === undefined) batch.set(line, (of = { requests: 0, prompt: 0, completion: 0, cost: 0, latency: 0 }))
    of.requests++
    of.prompt += prompt
    of.completion += completion
    of.cost += cost
    of.latency += latency
  }
  const rollUp = (): void => {
    const at = Date.now()
    const [today, thisHour] = [at - (at % day), at - (at % hour)]
    for (const [line, { completion, cost, latency, prompt, requests }] of batch) {
      const { account, application, endpoint, model, person, provider, tenant } = line
      const added = [requests, requests, prompt, completion, prompt + completion, cost, latency]
      addByTenant.run([tenant, today, application, "inference", provider, ...added])
      addByCaller.run([tenant, person, day, today, model, endpoint, ...added])
      addByCaller.run([tenant, person, hour, thisHour, model, endpoint, ...added])
      addByPayer.run([account, today, person, "own", ...added])
    }
    batch.clear()
  }

  /** Acts as the gate: reserves a call's bound if the account covers it. Must run inside a transaction. */
  const reserve = (call: string, account: string, amount: number): boolean => {
    if (hold.run(amount, account, amount).changes === 0) return false
    putReservation.run(call, account, amount, Date.now())
    return true
  }

  /** Charges a call: writes all of its rows and deletes its reservation. Must run inside a transaction. */
  const settle = (charge: Charge): void => {
    const { call, completion, cost, latency, line, prompt } = charge
    const { account, application, endpoint, model, provider, tenant } = line
    const reserved = takeReservation.get(call) as number
    const balance = pay.get(cost, reserved, account) as number
    const at = Date.now()
    const record = `use_${call}`
    // better-sqlite3 binds one array faster than many arguments.
    // prettier-ignore
    putUsage.run([
      record, at, account, tenant, application, endpoint, model, provider, prompt, completion, prompt + completion, cost,
      latency, account, tenant
    ])
    putEntry.run([account, cost, balance, record, model, at])
    fold(charge)
  }

  const group = (work: () => void): void => {
    begin.run()
    work()
    rollUp()
    commit.run()
  }

  // All work of an event loop iteration is committed together. `done` is called once the commit is on disk.
  let queue: Array<{ readonly work: () => unknown; readonly done: (result: unknown) => void }> = []
  const drain = () => {
    const jobs = queue
    queue = []
    const results: Array<unknown> = []
    group(() => {
      for (const job of jobs) results.push(job.work())
    })
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
    /** Reads the balances and totals, for the check after a run. */
    look: (): Books => ({
      balances: db.prepare("SELECT balance FROM accounts ORDER BY id").pluck().all() as ReadonlyArray<number>,
      reserved: db.prepare("SELECT sum(reserved) FROM accounts").pluck().get() as number,
      records: db.prepare("SELECT count(*) FROM tollgate_usage_records").pluck().get() as number,
      collected: db.prepare("SELECT coalesce(sum(amount), 0) FROM tollgate_ledger_entries").pluck().get() as number,
      summed: db
        .prepare("SELECT coalesce(sum(cost), 0) FROM rollup_by_caller WHERE grain = ?")
        .pluck()
        .get(day) as number
    }),
    close: (): void => {
      db.close()
    }
  }
}

/** The state of the floor's database after a run. Amounts are in nano-USD. */
export interface Books {
  /** The balances, sorted by account id. */
  readonly balances: ReadonlyArray<number>
  readonly reserved: number
  readonly records: number
  readonly collected: number
  /** The total charges according to the rollups. */
  readonly summed: number
}
