/** Short messages that disappear after a few seconds. Screen readers announce them. Anything important must also appear elsewhere. */
import { X } from "lucide-react"
import { useSyncExternalStore } from "react"
import { texts } from "../texts.ts"
import { Button } from "./Button.tsx"

interface Toast {
  readonly id: number
  readonly text: string
  readonly tone: "good" | "bad"
}

let activeToasts: ReadonlyArray<Toast> = []
let last = 0
const listeners = new Set<() => void>()
const life = 6000

const set = (next: ReadonlyArray<Toast>): void => {
  activeToasts = next
  for (const listener of listeners) listener()
}
const drop = (id: number): void => set(activeToasts.filter((one) => one.id !== id))

export const toast = (text: string, tone: Toast["tone"] = "good"): void => {
  const id = ++last
  set([...activeToasts.slice(-2), { id, text, tone }])
  setTimeout(() => drop(id), life)
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const Toasts = () => {
  const all = useSyncExternalStore(subscribe, () => activeToasts)
  return (
    <div className="toasts" role="status" aria-live="polite">
      {all.map(({ id, text, tone }) => (
        <div key={id} className={`toast toast-${tone}`}>
          <span>{text}</span>
          <Button kind="ghost" icon={X} aria-label={texts.app.close} onPress={() => drop(id)} />
        </div>
      ))}
    </div>
  )
}
