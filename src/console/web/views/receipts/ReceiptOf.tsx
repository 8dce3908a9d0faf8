/** Shows whether a receipt matches the page. It is fetched and verified on render. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { CircleAlert, Clock, ShieldCheck, TriangleAlert } from "lucide-react"
import type { LucideIcon } from "lucide-react"
import { useEffect, useRef } from "react"
import type { ReactNode } from "react"
import { tenantId } from "../../app/Client.ts"
import { count, day, time } from "../../moments.ts"
import { Button } from "../../parts/Button.tsx"
import { Code } from "../../parts/Code.tsx"
import { Copy } from "../../parts/Copy.tsx"
import { Facts } from "../../parts/Page.tsx"
import { Failed, Loading } from "../../parts/States.tsx"
import { receiptTexts as texts } from "../../texts/receipts.ts"
import { check } from "./checking.ts"
import type { Checked, Signatures, Subject } from "./checking.ts"
import { keyName, trustKeys } from "./trust.ts"
import type { Changed, Trust, WitnessKey } from "./trust.ts"

type Tone = "good" | "warn" | "bad" | "plain"

const icons: Readonly<Record<Tone, LucideIcon>> = {
  good: ShieldCheck,
  warn: TriangleAlert,
  bad: CircleAlert,
  plain: Clock
}

interface VerdictProps {
  readonly tone: Tone
  readonly title: string
  readonly children: ReactNode
}

const Verdict = ({ children, title, tone }: VerdictProps) => {
  const Icon = icons[tone]
  return (
    <div className="receipt-verdict" data-tone={tone} {...((tone === "bad" || tone === "warn") && { role: "alert" })}>
      <Icon size={18} strokeWidth={1.75} aria-hidden />
      <div>
        <p className="states-title">{title}</p>
        {children}
      </div>
    </div>
  )
}

const Cosignatures = ({ of: { cosigned, unknown } }: { readonly of: Signatures }) => (
  <>
    {cosigned.map(({ name, time: at }) => (
      <p key={name}>{texts.cosigned(name, time(at))}</p>
    ))}
    {unknown.length === 0 ? null : <p className="quiet">{texts.unknown(unknown.join(", "))}</p>}
  </>
)

/** Shows the witness keys so that the user can compare them. They come from the service. */
const WitnessKeys = ({ of }: { readonly of: ReadonlyArray<WitnessKey> }) => (
  <div className="small">
    <p className="quiet">{texts.witnesses}</p>
    <details>
      <summary>{texts.witnessKeys}</summary>
      <Facts
        of={of.map(({ key, since }) => [
          keyName(key),
          <>
            <code className="receipt-keys">{key}</code>
            <span className="quiet">{texts.storedSince(day(since))}</span>
          </>
        ])}
      />
    </details>
  </div>
)

interface KeepProps {
  readonly receipt: object
  /** The keys to verify with: a log key, and the keys of required witnesses. */
  readonly logKey: string | undefined
  readonly witnesses?: ReadonlyArray<WitnessKey>
}

/** Offers the receipt's text, and the command that verifies it elsewhere. */
const ReceiptExport = ({ logKey = "", receipt, witnesses = [] }: KeepProps) => {
  const keys = [logKey, ...witnesses.map(({ key }) => key)].map((key) => `--key '${key}'`).join(" ")
  const witnessesFlag = witnesses.length === 0 ? "" : ` --witnesses ${witnesses.length}`
  return (
    <>
      <div className="row">
        <Copy text={JSON.stringify(receipt, null, 2)} label={texts.copy} kind="plain" />
      </div>
      <p className="quiet small">{texts.keep}</p>
      <Code of={`tollgate receipt verify ${keys}${witnessesFlag} receipt.json`} />
    </>
  )
}

interface KeyChangedProps {
  readonly title: string
  readonly text: string
  /** The changed keys of one kind, as text and as the change to trust. */
  readonly keys: ReadonlyArray<string>
  readonly changed: Changed
}

const KeyChanged = ({ changed, keys, text, title }: KeyChangedProps) => {
  const queries = useQueryClient()
  const trust = (): void => {
    trustKeys(changed, new Date().toISOString())
    void queries.invalidateQueries({ queryKey: ["receipt"] })
  }
  if (keys.length === 0) return null
  return (
    <Verdict tone="warn" title={title}>
      <p>{text}</p>
      <code className="receipt-keys">{keys.join(" ")}</code>
      <Button onPress={trust}>{texts.trust}</Button>
    </Verdict>
  )
}

/** Warns about changed log keys and witness keys. */
const KeysChanged = ({ of: { changed, since } }: { readonly of: Trust }) => {
  const { keys, witnesses } = changed
  return (
    <>
      <KeyChanged
        title={texts.changed}
        text={texts.changedText(day(since))}
        keys={keys}
        changed={{ keys, witnesses: [] }}
      />
      <KeyChanged
        title={texts.witnessChanged}
        text={texts.witnessChangedText(witnesses.map(keyName).join(", "))}
        keys={witnesses}
        changed={{ keys: [], witnesses }}
      />
    </>
  )
}

/** Returns a row for a fact, or none if the receipt does not contain it. */
const factRow = (name: string, value: string): ReadonlyArray<readonly [name: string, value: ReactNode]> =>
  value === "" ? [] : [[name, <code key={name}>{value}</code>]]

const Proven = ({ of }: { readonly of: Extract<Checked, { kind: "verified" }> }) => {
  const { entry, index, origin, root, size } = of.found
  const witnesses = of.signatures.cosigned.map(({ key }) => key)
  return (
    <>
      <Verdict tone="good" title={texts.inLog[entry.source === "call" ? "charge" : "entry"]}>
        <p>{texts.checkpoint(count(size), time(of.fetchedAt))}</p>
        <Cosignatures of={of.signatures} />
      </Verdict>
      <Facts
        of={[
          [texts.log, origin],
          [texts.entry, texts.entryOf(count(entry.number), entry.account)],
          [texts.leaf, count(index)],
          ...factRow(texts.vendor, entry.vendor_requests),
          ...factRow(texts.request, entry.request_hash),
          ...factRow(texts.answer, entry.answer_hash),
          [texts.root, <code key="root">{root}</code>]
        ]}
      />
      {witnesses.length === 0 ? null : <WitnessKeys of={witnesses} />}
      <ReceiptExport receipt={of.receipt} logKey={of.trust.keys[0]} witnesses={witnesses} />
    </>
  )
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

const ReceiptResult = ({ of }: { readonly of: Checked }) => {
  switch (of.kind) {
    case "pending":
      return (
        <Verdict tone="plain" title={texts.pending}>
          <p>{texts.pendingText}</p>
        </Verdict>
      )
    case "none":
      return (
        <Verdict tone="plain" title={texts.none}>
          <p>{of.why}</p>
        </Verdict>
      )
    case "unsupported":
      return (
        <>
          <Verdict tone="warn" title={texts.unsupported}>
            <p>{of.why}</p>
          </Verdict>
          <Code of="tollgate receipt verify --key KEY receipt.json" />
        </>
      )
    case "invalid":
      return (
        <>
          <Verdict tone="bad" title={texts.invalid}>
            <p>{sentence(of.why)}</p>
            <p>{texts.invalidText}</p>
          </Verdict>
          <ReceiptExport receipt={of.receipt} logKey={of.trust.keys[0]} />
        </>
      )
    case "verified":
      return <Proven of={of} />
  }
}

const hasTrust = (of: Checked): of is Extract<Checked, { kind: "verified" | "invalid" }> =>
  of.kind === "verified" || of.kind === "invalid"

const pendingMillis = 2000

const useChecked = (of: Subject) =>
  useQuery({
    queryKey: ["receipt", tenantId(), of.of],
    queryFn: () => check(of),
    // A proof remains valid, so it is never stale. Reopening the receipt or trusting a key reverifies it.
    staleTime: Infinity,
    gcTime: 0,
    refetchInterval: ({ state }) => (state.data?.kind === "pending" ? pendingMillis : false)
  })

const Result = ({ of }: { readonly of: ReturnType<typeof useChecked> }) => {
  if (of.isError) {
    return (
      <Failed title={texts.unavailable} error={of.error} isRetrying={of.isFetching} retry={() => void of.refetch()} />
    )
  }
  if (of.data === undefined) return <Loading lines={3} />
  return (
    <>
      {hasTrust(of.data) ? <KeysChanged of={of.data.trust} /> : null}
      <ReceiptResult of={of.data} />
    </>
  )
}

export const ReceiptOf = ({ of }: { readonly of: Subject }) => {
  const checked = useChecked(of)
  const box = useRef<HTMLDivElement>(null)
  const kind = checked.isError ? "error" : checked.data?.kind
  // Scroll to the result, which may be outside the visible part of the dialog.
  useEffect(() => {
    if (kind !== undefined) box.current?.scrollIntoView({ block: "nearest" })
  }, [kind])
  return (
    <div ref={box} className="receipt" aria-live="polite">
      <Result of={checked} />
    </div>
  )
}
