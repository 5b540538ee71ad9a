// theme.js: the colour scheme, before the first paint. Not a module, so that the page is never shown in the wrong one.
//
// localStorage has what was chosen, if it is not the system's scheme. data-scheme of the root: what was chosen (auto, light, dark);
// data-theme: what that is now. 'pawl-theme' tells all that draw with colours that these have changed.
(() => {
    const root = document.documentElement;
    const system = matchMedia('(prefers-color-scheme: dark)');
    function apply() {
        const kept = localStorage.getItem('pawl-scheme');
        root.dataset.scheme = kept === 'light' || kept === 'dark' ? kept : 'auto';
        root.dataset.theme = root.dataset.scheme !== 'auto' ? kept : system.matches ? 'dark' : 'light';
        dispatchEvent(new Event('pawl-theme'));
    }
    system.addEventListener('change', apply);
    addEventListener('pawl-scheme', apply);
    apply();
})();
