/**
 * The page's only tooltip. It shows the `data-tip` of the element that is hovered, tapped or focused. For a focused row, it shows the tip of the
 * row's first amount. The tooltip is purely visual, because the element itself contains the text for screen readers.
 */
import { useEffect, useRef } from "react"

const gap = 6

const tipOf = (target: EventTarget | null): HTMLElement | undefined => {
  if (!(target instanceof Element)) return undefined
  return target.closest<HTMLElement>("[data-tip]") ?? undefined
}

export const Tips = () => {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const box = element.current!
    const hide = (): void => {
      box.hidden = true
    }
    const show = (target: HTMLElement | undefined): void => {
      const text = target?.dataset["tip"]
      if (target === undefined || text === undefined || text === "") return hide()
      box.textContent = text
      box.hidden = false
      // Reset the position, because it would limit the width.
      box.style.left = "0"
      const at = target.getBoundingClientRect()
      const { height, width } = box.getBoundingClientRect()
      const above = at.top - height - gap
      const left = Math.min(Math.max(4, at.left + at.width / 2 - width / 2), innerWidth - width - 4)
      box.style.left = `${left}px`
      box.style.top = `${above < 4 ? at.bottom + gap : above}px`
    }
    const over = ({ target }: Event): void => show(tipOf(target))
    const focused = ({ target }: Event): void => {
      if (!(target instanceof HTMLElement) || !target.matches(":focus-visible")) return hide()
      show(
        tipOf(target) ??
          (target.matches("tr") ? target.querySelector<HTMLElement>("[data-tip].money") : null) ??
          undefined
      )
    }
    /** Shows the tooltip on touch screens, which cannot hover. Interactive elements show no tooltip. */
    const tapped = (event: Event): void => {
      if (!(event instanceof PointerEvent) || event.pointerType !== "touch") return
      const at = tipOf(event.target)
      if (at?.closest("a, button, .table-open") === null) show(at)
    }
    const key = (event: Event): void => {
      if (event instanceof KeyboardEvent && event.key === "Escape") hide()
    }
    const listeners: ReadonlyArray<readonly [string, EventListener]> = [
      ["pointerover", over],
      ["focusin", focused],
      ["focusout", hide],
      ["pointerdown", hide],
      ["click", tapped],
      ["keydown", key]
    ]
    for (const [type, listener] of listeners) document.addEventListener(type, listener)
    addEventListener("scroll", hide, true)
    return () => {
      for (const [type, listener] of listeners) document.removeEventListener(type, listener)
      removeEventListener("scroll", hide, true)
    }
  }, [])
  return <div ref={element} className="tips" hidden aria-hidden />
}
