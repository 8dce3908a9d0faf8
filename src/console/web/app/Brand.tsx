/** The logo: a raised barrier. */

export const Mark = ({ size = 20 }: { readonly size?: number }) => (
  <svg width={size} height={size} viewBox="0 0 20 20" aria-hidden focusable="false">
    <path d="M3 17.5h14" stroke="currentColor" strokeWidth="1.6" strokeLinecap="round" />
    <path d="M5.2 17V8.2" stroke="currentColor" strokeWidth="2.4" strokeLinecap="round" />
    <path d="M5.2 10.2 16.6 3.4" stroke="var(--accent)" strokeWidth="2.4" strokeLinecap="round" />
    <circle cx="5.2" cy="10.2" r="1.5" fill="var(--paper)" stroke="currentColor" strokeWidth="1.2" />
  </svg>
)
